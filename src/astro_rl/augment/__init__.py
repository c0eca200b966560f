"""Augmentation: chains completed by the models, made into a dataset with lineage."""
