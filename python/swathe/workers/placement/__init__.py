"""Which worker a batch goes to. No clock and no network: the simulation uses it, too."""
