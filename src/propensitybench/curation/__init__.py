"""Everything that checks or measures the texts of a data set; playing one needs none of it."""
