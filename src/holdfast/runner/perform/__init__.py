"""The performer: carries out the planner's steps."""
