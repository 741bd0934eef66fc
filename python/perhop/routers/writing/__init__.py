"""From a scenario's link to what dialects write: queues, meters, ranges of numbers, remarks."""
