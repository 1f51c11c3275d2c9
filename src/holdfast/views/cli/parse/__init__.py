"""The command line: what each verb accepts, how it is parsed, and how mistakes are explained."""
