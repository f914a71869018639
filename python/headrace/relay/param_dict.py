"""Parameters as bytes, by the place where users of Relay look for them."""

from headrace._params import load_param_dict, save_param_dict

__all__ = ["load_param_dict", "save_param_dict"]
