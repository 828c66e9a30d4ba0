"""One model of the network in each file: queues, slots, limits, loss, sharing, deadlock."""
