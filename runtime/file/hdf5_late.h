/* SPDX-License-Identifier: BSD-3-Clause */
/* HDF5, opened at its first use (core/late_library.h): in a file that includes this, the functions and types of HDF5's header mean those of the
 * library that oly_hdf5_late_open has opened. For the files runtime/file/hdf5_*.c only, where the library is built with HDF5. */
#ifndef OLY_FILE_HDF5_LATE_H
#define OLY_FILE_HDF5_LATE_H
#include <hdf5.h>
#include <stdbool.h>

/* clang-format off */
#define OLY_HDF5_SYMBOLS(x)                                                                                 \
    x(H5Aclose) x(H5Acreate2) x(H5Adelete) x(H5Aexists) x(H5Aget_space) x(H5Aget_type) x(H5Aopen) x(H5Aread)          \
    x(H5Awrite) x(H5Dclose) x(H5Dcreate2) x(H5Dget_chunk_info_by_coord) x(H5Dget_create_plist) x(H5Dget_offset)       \
    x(H5Dget_space) x(H5Dget_type) x(H5Dopen2) x(H5Dread) x(H5Dset_extent) x(H5Eclear2) x(H5Eset_auto2) x(H5Ewalk2)   \
    x(H5Fclose) x(H5Fcreate) x(H5Fopen) x(H5Iget_type) x(H5Ldelete) x(H5Lexists) x(H5Oclose) x(H5Oopen) x(H5Pclose) x(H5Pcreate)     \
    x(H5Pget_chunk) x(H5Pget_layout) x(H5Pget_nfilters) x(H5Pset_alloc_time) x(H5Pset_chunk)                          \
    x(H5Pset_create_intermediate_group) x(H5Pset_fill_time) x(H5Sclose) x(H5Screate) x(H5Screate_simple)              \
    x(H5Sget_simple_extent_dims) x(H5Sget_simple_extent_npoints) x(H5Sget_simple_extent_type) x(H5Sselect_hyperslab)  \
    x(H5Tclose) x(H5Tcopy) x(H5Tcreate) x(H5Tenum_create) x(H5Tenum_insert) x(H5Tenum_valueof) x(H5Tequal)            \
    x(H5Tget_class) x(H5Tget_fields) x(H5Tget_member_name) x(H5Tget_member_type) x(H5Tget_nmembers) x(H5Tget_sign)    \
    x(H5Tget_size) x(H5Tget_strpad) x(H5Tget_super) x(H5Tinsert) x(H5Tis_variable_str) x(H5Tset_cset)                 \
    x(H5Tset_ebias) x(H5Tset_fields) x(H5Tset_size) x(H5check_version) x(H5free_memory) x(H5open)                     \
    x(H5P_CLS_DATASET_CREATE_ID_g) x(H5P_CLS_LINK_CREATE_ID_g) x(H5T_C_S1_g) x(H5T_NATIVE_DOUBLE_g)                   \
    x(H5T_NATIVE_FLOAT_g) x(H5T_NATIVE_INT16_g) x(H5T_NATIVE_INT32_g) x(H5T_NATIVE_INT64_g) x(H5T_NATIVE_INT8_g)      \
    x(H5T_NATIVE_UINT16_g) x(H5T_NATIVE_UINT32_g) x(H5T_NATIVE_UINT64_g) x(H5T_NATIVE_UINT8_g)
/* clang-format on */

#define OLY_HDF5_POINTER(name) __typeof__(name) *p##name;
typedef struct oly_hdf5_symbols {
    OLY_HDF5_SYMBOLS(OLY_HDF5_POINTER)
} oly_hdf5_symbols;
#undef OLY_HDF5_POINTER

extern oly_hdf5_symbols oly_hdf5;

/* False: it cannot be opened, for this reason. Any thread. */
bool oly_hdf5_late_open(const char **reason);

#ifndef OLY_HDF5_NAMES
#define H5Aclose                         (*oly_hdf5.pH5Aclose)
#define H5Acreate2                       (*oly_hdf5.pH5Acreate2)
#define H5Adelete                        (*oly_hdf5.pH5Adelete)
#define H5Aexists                        (*oly_hdf5.pH5Aexists)
#define H5Aget_space                     (*oly_hdf5.pH5Aget_space)
#define H5Aget_type                      (*oly_hdf5.pH5Aget_type)
#define H5Aopen                          (*oly_hdf5.pH5Aopen)
#define H5Aread                          (*oly_hdf5.pH5Aread)
#define H5Awrite                         (*oly_hdf5.pH5Awrite)
#define H5Dclose                         (*oly_hdf5.pH5Dclose)
#define H5Dcreate2                       (*oly_hdf5.pH5Dcreate2)
#define H5Dget_chunk_info_by_coord       (*oly_hdf5.pH5Dget_chunk_info_by_coord)
#define H5Dget_create_plist              (*oly_hdf5.pH5Dget_create_plist)
#define H5Dget_offset                    (*oly_hdf5.pH5Dget_offset)
#define H5Dget_space                     (*oly_hdf5.pH5Dget_space)
#define H5Dget_type                      (*oly_hdf5.pH5Dget_type)
#define H5Dopen2                         (*oly_hdf5.pH5Dopen2)
#define H5Dread                          (*oly_hdf5.pH5Dread)
#define H5Dset_extent                    (*oly_hdf5.pH5Dset_extent)
#define H5Eclear2                        (*oly_hdf5.pH5Eclear2)
#define H5Eset_auto2                     (*oly_hdf5.pH5Eset_auto2)
#define H5Ewalk2                         (*oly_hdf5.pH5Ewalk2)
#define H5Fclose                         (*oly_hdf5.pH5Fclose)
#define H5Fcreate                        (*oly_hdf5.pH5Fcreate)
#define H5Fopen                          (*oly_hdf5.pH5Fopen)
#define H5Iget_type                      (*oly_hdf5.pH5Iget_type)
#define H5Ldelete                        (*oly_hdf5.pH5Ldelete)
#define H5Lexists                        (*oly_hdf5.pH5Lexists)
#define H5Oclose                         (*oly_hdf5.pH5Oclose)
#define H5Oopen                          (*oly_hdf5.pH5Oopen)
#define H5Pclose                         (*oly_hdf5.pH5Pclose)
#define H5Pcreate                        (*oly_hdf5.pH5Pcreate)
#define H5Pget_chunk                     (*oly_hdf5.pH5Pget_chunk)
#define H5Pget_layout                    (*oly_hdf5.pH5Pget_layout)
#define H5Pget_nfilters                  (*oly_hdf5.pH5Pget_nfilters)
#define H5Pset_alloc_time                (*oly_hdf5.pH5Pset_alloc_time)
#define H5Pset_chunk                     (*oly_hdf5.pH5Pset_chunk)
#define H5Pset_create_intermediate_group (*oly_hdf5.pH5Pset_create_intermediate_group)
#define H5Pset_fill_time                 (*oly_hdf5.pH5Pset_fill_time)
#define H5Sclose                         (*oly_hdf5.pH5Sclose)
#define H5Screate                        (*oly_hdf5.pH5Screate)
#define H5Screate_simple                 (*oly_hdf5.pH5Screate_simple)
#define H5Sget_simple_extent_dims        (*oly_hdf5.pH5Sget_simple_extent_dims)
#define H5Sget_simple_extent_npoints     (*oly_hdf5.pH5Sget_simple_extent_npoints)
#define H5Sget_simple_extent_type        (*oly_hdf5.pH5Sget_simple_extent_type)
#define H5Sselect_hyperslab              (*oly_hdf5.pH5Sselect_hyperslab)
#define H5Tclose                         (*oly_hdf5.pH5Tclose)
#define H5Tcopy                          (*oly_hdf5.pH5Tcopy)
#define H5Tcreate                        (*oly_hdf5.pH5Tcreate)
#define H5Tenum_create                   (*oly_hdf5.pH5Tenum_create)
#define H5Tenum_insert                   (*oly_hdf5.pH5Tenum_insert)
#define H5Tenum_valueof                  (*oly_hdf5.pH5Tenum_valueof)
#define H5Tequal                         (*oly_hdf5.pH5Tequal)
#define H5Tget_class                     (*oly_hdf5.pH5Tget_class)
#define H5Tget_fields                    (*oly_hdf5.pH5Tget_fields)
#define H5Tget_member_name               (*oly_hdf5.pH5Tget_member_name)
#define H5Tget_member_type               (*oly_hdf5.pH5Tget_member_type)
#define H5Tget_nmembers                  (*oly_hdf5.pH5Tget_nmembers)
#define H5Tget_sign                      (*oly_hdf5.pH5Tget_sign)
#define H5Tget_size                      (*oly_hdf5.pH5Tget_size)
#define H5Tget_strpad                    (*oly_hdf5.pH5Tget_strpad)
#define H5Tget_super                     (*oly_hdf5.pH5Tget_super)
#define H5Tinsert                        (*oly_hdf5.pH5Tinsert)
#define H5Tis_variable_str               (*oly_hdf5.pH5Tis_variable_str)
#define H5Tset_cset                      (*oly_hdf5.pH5Tset_cset)
#define H5Tset_ebias                     (*oly_hdf5.pH5Tset_ebias)
#define H5Tset_fields                    (*oly_hdf5.pH5Tset_fields)
#define H5Tset_size                      (*oly_hdf5.pH5Tset_size)
#define H5check_version                  (*oly_hdf5.pH5check_version)
#define H5free_memory                    (*oly_hdf5.pH5free_memory)
#define H5open                           (*oly_hdf5.pH5open)
#define H5P_CLS_DATASET_CREATE_ID_g      (*oly_hdf5.pH5P_CLS_DATASET_CREATE_ID_g)
#define H5P_CLS_LINK_CREATE_ID_g         (*oly_hdf5.pH5P_CLS_LINK_CREATE_ID_g)
#define H5T_C_S1_g                       (*oly_hdf5.pH5T_C_S1_g)
#define H5T_NATIVE_DOUBLE_g              (*oly_hdf5.pH5T_NATIVE_DOUBLE_g)
#define H5T_NATIVE_FLOAT_g               (*oly_hdf5.pH5T_NATIVE_FLOAT_g)
#define H5T_NATIVE_INT16_g               (*oly_hdf5.pH5T_NATIVE_INT16_g)
#define H5T_NATIVE_INT32_g               (*oly_hdf5.pH5T_NATIVE_INT32_g)
#define H5T_NATIVE_INT64_g               (*oly_hdf5.pH5T_NATIVE_INT64_g)
#define H5T_NATIVE_INT8_g                (*oly_hdf5.pH5T_NATIVE_INT8_g)
#define H5T_NATIVE_UINT16_g              (*oly_hdf5.pH5T_NATIVE_UINT16_g)
#define H5T_NATIVE_UINT32_g              (*oly_hdf5.pH5T_NATIVE_UINT32_g)
#define H5T_NATIVE_UINT64_g              (*oly_hdf5.pH5T_NATIVE_UINT64_g)
#define H5T_NATIVE_UINT8_g               (*oly_hdf5.pH5T_NATIVE_UINT8_g)
#endif
#endif
