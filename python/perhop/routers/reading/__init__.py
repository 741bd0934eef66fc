"""From ports to a scenario: schedulers, queues, meters, and the text with its comments and its report."""
