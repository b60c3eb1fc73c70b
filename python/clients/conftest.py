"""The clients use the scripted model of the tests."""

import os
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
# LiteLLM would load prices from the network.
os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"
