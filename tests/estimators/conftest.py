from hypothesis import settings

# A busy machine must not fail a property: no test asserts on the clock.
settings.register_profile("estimators", deadline=None)
settings.load_profile("estimators")
