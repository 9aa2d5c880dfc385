! Read the first card of an object, and cut a box of its image into an array.
!
!   gfortran read.f90 -o read $(pkg-config --libs swathe)
!   ./read frame.fits
module swathe
  use iso_c_binding
  implicit none
  integer(c_int), parameter :: o_rdonly = 0, sw_trim = 0

  type, bind(c) :: sw_image
    integer(c_int) :: bitpix, axes
    integer(c_int64_t) :: start(8), shape(8), bytes
    real(c_double) :: bzero, bscale
  end type

  interface
    function sw_open(url, flags) bind(c) result(handle)
      import :: c_char, c_int
      character(kind=c_char), intent(in) :: url(*)
      integer(c_int), value :: flags
      integer(c_int) :: handle
    end function

    function sw_pread(handle, buffer, length, offset) bind(c) result(count)
      import :: c_char, c_int, c_int64_t, c_size_t
      integer(c_int), value :: handle
      character(kind=c_char), intent(out) :: buffer(*)
      integer(c_size_t), value :: length
      integer(c_int64_t), value :: offset
      integer(c_size_t) :: count ! ssize_t: kinds of Fortran have a sign
    end function

    function sw_cut_pixels(handle, hdu, pixels, flags, image, buffer, length) bind(c) result(count)
      import :: c_int, c_int64_t, c_size_t, c_ptr, sw_image
      integer(c_int), value :: handle, flags
      type(c_ptr), value :: hdu, buffer
      integer(c_int64_t), intent(in) :: pixels(4)
      type(sw_image), intent(out) :: image
      integer(c_size_t), value :: length
      integer(c_size_t) :: count
    end function

    function sw_close(handle) bind(c) result(status)
      import :: c_int
      integer(c_int), value :: handle
      integer(c_int) :: status
    end function

    function sw_error() bind(c) result(text)
      import :: c_ptr
      type(c_ptr) :: text
    end function

    function strlen(text) bind(c) result(length)
      import :: c_ptr, c_size_t
      type(c_ptr), value :: text
      integer(c_size_t) :: length
    end function
  end interface

contains

  ! The text of the last error.
  function error_text() result(text)
    character(len=:), allocatable :: text
    character(kind=c_char), pointer :: chars(:)
    type(c_ptr) :: place
    integer :: at
    place = sw_error()
    call c_f_pointer(place, chars, [strlen(place)])
    allocate (character(len=size(chars)) :: text)
    do at = 1, size(chars)
      text(at:at) = chars(at)
    end do
  end function

  subroutine check(result)
    integer(c_size_t), intent(in) :: result
    if (result < 0) then
      print '(a)', error_text()
      stop 1
    end if
  end subroutine
end module

program read_object
  use swathe
  implicit none
  character(len=4096) :: name
  character(kind=c_char) :: card(80)
  integer(c_int) :: handle
  integer(c_size_t) :: count
  integer(c_int64_t) :: pixels(4) = [10, 20, 5, 4] ! x, y, width, height, from 0
  integer(c_int16_t), target :: values(5, 4)
  type(sw_image) :: image

  call get_command_argument(1, name)
  handle = sw_open(trim(name)//c_null_char, o_rdonly)
  call check(int(handle, c_size_t))
  count = sw_pread(handle, card, 80_c_size_t, 0_c_int64_t)
  call check(count)
  print '(80a)', card(1:count)
  count = sw_cut_pixels(handle, c_null_ptr, pixels, sw_trim, image, c_loc(values), &
                        int(storage_size(values)/8*size(values), c_size_t))
  call check(count)
  print '(a,i0,a,f0.3)', 'bytes ', count, ', mean ', &
    image%bzero + image%bscale*sum(real(values, c_double))/size(values)
  call check(int(sw_close(handle), c_size_t))
end program
