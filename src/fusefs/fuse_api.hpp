#pragma once

// Every file of this folder takes libfuse from here, so that all speak the same version of its API.
#define FUSE_USE_VERSION 312
#include <fuse_lowlevel.h>
