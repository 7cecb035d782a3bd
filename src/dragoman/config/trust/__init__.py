"""Trust of folders: what in one would act, who could change it, and what the person said of it."""
