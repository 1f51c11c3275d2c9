"""Which task next: the queue of a home.

Packets are the truth; the queue can be rebuilt from them at any time.
"""
