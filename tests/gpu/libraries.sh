# libraries.sh FOLDER - for run.sh: where CUPTI and NCCL are, if they are where no loader looks.

# first VARIABLE FILE... - names the first file that is there, unless the user has named one.
first()
{
    local variable=$1 file
    shift
    [ -z "${!variable-}" ] || return 0
    for file in "$@"; do
        [ -e "$file" ] && export "$variable=$file" && return
    done
    return 0
}

# wheels NAME - Python's packages bring NVIDIA's libraries along: folders that may have this one's.
wheels()
{
    local root folder
    for root in "${VIRTUAL_ENV:-}" "${CONDA_PREFIX:-}" "${HOME:-}/.local" /usr/local /usr /opt/*; do
        for folder in "$root"/lib/python3*/{site,dist}-packages/nvidia/"$1"/lib; do
            [ -d "$folder" ] && printf '%s\n' "$folder"
        done
    done
    command -v python3 >/dev/null && python3 -c "import sys; print(*(p + '/nvidia/$1/lib' for p in sys.path if p), sep='\n')"
}

# The toolkit's, else a package's; those of CUDA 13 share a folder. One that was carried here comes last: it may be
# newer than the driver.
find_libraries()
{
    local folder cupti=() nccl=(/usr/lib/*-linux-gnu/libnccl.so.2) blas=()
    for folder in "${CUDA_HOME:-/usr/local/cuda}" /usr/local/cuda*; do
        cupti+=("$folder"/{extras/CUPTI/lib64,lib64}/libcupti.so.1?)
        nccl+=("$folder"/lib64/libnccl.so.2)
        blas+=("$folder"/lib64/libcublas.so.1?)
    done
    [ -n "${PK_CUPTI_LIBRARY-}" ] ||
        while read -r folder; do cupti+=("$folder"/libcupti.so.1?); done < <(wheels cu13; wheels cuda_cupti)
    [ -n "${PK_NCCL_LIBRARY-}" ] || while read -r folder; do nccl+=("$folder"/libnccl.so.2); done < <(wheels nccl)
    first PK_CUBLAS_LIBRARY "${blas[@]}"
    if [ -z "${PK_CUBLAS_LIBRARY-}" ]; then
        while read -r folder; do blas+=("$folder"/libcublas.so.1?); done < <(wheels cu13; wheels cublas)
        first PK_CUBLAS_LIBRARY "${blas[@]}"
    fi
    first PK_CUPTI_LIBRARY "${cupti[@]}" "$1"/libcupti.so.1?
    first PK_NCCL_LIBRARY "${nccl[@]}"
    export LD_LIBRARY_PATH=$1/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH} # libpk, its shim
}
