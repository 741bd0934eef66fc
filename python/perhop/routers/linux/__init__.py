"""What several dialects take from Linux: quantities as `tc` writes them, CAKE, hfsc."""
