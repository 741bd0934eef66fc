"""Parts of Linux that several dialects share: quantities as `tc` writes them, CAKE, hfsc."""
