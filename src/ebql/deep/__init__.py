"""The deep floor: DQN, double DQN and deep EBQL, which differ by one function of `targets`."""
