"""What contenders do when they get less: do they crash or adapt?"""
