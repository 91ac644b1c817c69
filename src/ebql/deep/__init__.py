"""Deep agents: DQN, double DQN and EBQL, which differ by one function in `targets`, and their relatives."""
