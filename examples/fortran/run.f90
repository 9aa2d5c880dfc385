! A simulation over the processes of MPI writes an array of 16 x 20 x 24 at each second iteration.
! Fortran's first axis is the fastest: the shape that libswathe is told is its reverse.
!
!   mpicc -c swathe_mpi.c $(pkg-config --cflags swathe)
!   gfortran run.f90 swathe_mpi.o -o run $(pkg-config --libs swathe) -lmpi
!   mpiexec -n 4 ./run FOLDER
module swathe_run
  use iso_c_binding
  implicit none

  type, bind(c) :: sw_ranks
    integer(c_int) :: rank, size
    type(c_funptr) :: gather, exchange
    type(c_ptr) :: context
  end type

  interface
    ! Those of C: a program that has the module `mpi` uses that, and sw_mpi_ranks_f(comm, ranks).
    function mpi_init(argc, argv) bind(c, name='MPI_Init') result(status)
      import :: c_int, c_ptr
      type(c_ptr), value :: argc, argv
      integer(c_int) :: status
    end function

    function mpi_finalize() bind(c, name='MPI_Finalize') result(status)
      import :: c_int
      integer(c_int) :: status
    end function

    subroutine sw_mpi_world_f(ranks) bind(c)
      import :: sw_ranks
      type(sw_ranks), intent(out) :: ranks
    end subroutine

    function sw_run_begin(folder, name, iterations, ranks) bind(c) result(run)
      import :: c_char, c_int, c_int64_t, sw_ranks
      character(kind=c_char), intent(in) :: folder(*), name(*)
      integer(c_int64_t), value :: iterations
      type(sw_ranks), intent(in) :: ranks
      integer(c_int) :: run
    end function

    function sw_run_array(run, name, type, axes, shape, every, pattern, flags) bind(c) result(array)
      import :: c_char, c_int, c_int64_t
      integer(c_int), value :: run, axes, flags
      character(kind=c_char), intent(in) :: name(*), type(*), pattern(*)
      integer(c_int64_t), intent(in) :: shape(*)
      integer(c_int64_t), value :: every
      integer(c_int) :: array
    end function

    function sw_run_block(run, array, start, shape) bind(c) result(status)
      import :: c_int, c_int64_t
      integer(c_int), value :: run, array
      integer(c_int64_t), intent(out) :: start(*), shape(*)
      integer(c_int) :: status
    end function

    function sw_run_write(run, array, iteration, block, length) bind(c) result(status)
      import :: c_int, c_int64_t, c_ptr, c_size_t
      integer(c_int), value :: run, array
      integer(c_int64_t), value :: iteration
      type(c_ptr), value :: block
      integer(c_size_t), value :: length
      integer(c_int) :: status
    end function

    function sw_run_end(run) bind(c) result(status)
      import :: c_int
      integer(c_int), value :: run
      integer(c_int) :: status
    end function

    function sw_error() bind(c) result(text)
      import :: c_ptr
      type(c_ptr) :: text
    end function

    subroutine puts(text) bind(c)
      import :: c_ptr
      type(c_ptr), value :: text
    end subroutine
  end interface

contains

  integer(c_int) function check(status) result(same)
    integer(c_int), intent(in) :: status
    if (status < 0) then
      call puts(sw_error())
      stop 1
    end if
    same = status
  end function
end module

program write_run
  use swathe_run
  implicit none
  integer(c_int64_t), parameter :: iterations = 6, shape(3) = [24, 20, 16] ! in the order of C
  integer(c_int64_t) :: start(3), own(3), i, x, y, z
  integer(c_int) :: run, temp, status
  real(c_float), allocatable, target :: block(:, :, :)
  type(sw_ranks) :: ranks
  character(len=4096) :: folder

  status = mpi_init(c_null_ptr, c_null_ptr)
  call get_command_argument(1, folder)
  call sw_mpi_world_f(ranks)
  run = check(sw_run_begin(trim(folder)//c_null_char, 'waves'//c_null_char, iterations, ranks))
  temp = check(sw_run_array(run, 'temp'//c_null_char, 'f4'//c_null_char, 3, shape, 2_c_int64_t, &
                            'BBB'//c_null_char, 0))
  status = check(sw_run_block(run, temp, start, own))
  allocate (block(own(3), own(2), own(1)))
  do i = 0, iterations
    do z = 1, own(1)
      do y = 1, own(2)
        do x = 1, own(3)
          block(x, y, z) = real(((start(1) + z - 1)*20 + start(2) + y - 1)*16 + start(3) + x - 1 &
                                + 10000*i, c_float)
        end do
      end do
    end do
    status = check(sw_run_write(run, temp, i, c_loc(block), int(4*size(block), c_size_t)))
  end do
  status = check(sw_run_end(run)) ! all is durable
  status = mpi_finalize()
end program
