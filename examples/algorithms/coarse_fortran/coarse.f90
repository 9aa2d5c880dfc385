! Average images of 16-bit pixels over a day and over blocks, as coarse.py does.
!
! A namelist names the images, the output, and the value of the parameter.
program coarse
  use iso_fortran_env, only: int16, int64, real32, real64
  implicit none
  integer, parameter :: most = 1000, block = 2880
  character(len=100) :: file(most), mean
  character(len=200) :: list
  integer :: count, factor, unit, image, width, height, columns, rows
  integer(int64) :: start
  real(real64), allocatable :: sums(:, :)
  namelist /granules/ count, file
  namelist /outputs/ mean
  namelist /parameters/ factor

  call get_environment_variable("SWATHE_NAMELIST", list)
  open (newunit=unit, file=list, action="read")
  read (unit, nml=granules)
  rewind (unit)
  read (unit, nml=outputs)
  rewind (unit)
  read (unit, nml=parameters)
  close (unit)

  do image = 1, count
    open (newunit=unit, file=file(image), action="read", access="stream", form="unformatted", &
          convert="big_endian")
    call read_header(unit, columns, rows, start)
    if (image == 1) then
      width = columns
      height = rows
      allocate (sums(width / factor, height / factor), source=0.0_real64)
    end if
    if (columns /= width .or. rows /= height) error stop "expected images of one size"
    call add(unit, start)
    close (unit)
  end do
  call write_image(mean)

contains

  ! Read the size of an image, and where its pixels start.
  subroutine read_header(unit, columns, rows, start)
    integer, intent(in) :: unit
    integer, intent(out) :: columns, rows
    integer(int64), intent(out) :: start
    character(len=80) :: card
    integer(int64) :: cards
    integer :: bitpix
    bitpix = 0
    columns = 0
    rows = 0
    cards = 0
    do
      read (unit, pos=80 * cards + 1) card
      cards = cards + 1
      select case (card(1:9))
      case ("BITPIX  =")
        read (card(11:30), *) bitpix
      case ("NAXIS1  =")
        read (card(11:30), *) columns
      case ("NAXIS2  =")
        read (card(11:30), *) rows
      end select
      if (card(1:8) == "END") exit
    end do
    if (bitpix /= 16) error stop "expected an image of 16-bit pixels"
    start = (80 * cards + block - 1) / block * block
  end subroutine

  ! Add the pixels of an image to those of its blocks.
  subroutine add(unit, start)
    integer, intent(in) :: unit
    integer(int64), intent(in) :: start
    integer(int16) :: row(width)
    integer :: x, y
    do y = 1, height / factor * factor
      read (unit, pos=start + 2_int64 * width * (y - 1) + 1) row
      do x = 1, width / factor * factor
        associate (sum => sums((x - 1) / factor + 1, (y - 1) / factor + 1))
          sum = sum + row(x)
        end associate
      end do
    end do
  end subroutine

  ! Write means as an image of 32-bit floats.
  subroutine write_image(path)
    character(len=*), intent(in) :: path
    integer :: unit, rest
    open (newunit=unit, file=path, access="stream", form="unformatted", convert="big_endian")
    write (unit) card("SIMPLE", "T"), card("BITPIX", "-32"), card("NAXIS", "2")
    write (unit) card("NAXIS1", text(size(sums, 1))), card("NAXIS2", text(size(sums, 2)))
    write (unit) "END", repeat(" ", block - 5 * 80 - 3)
    write (unit) real(sums / (real(count, real64) * factor**2), real32)
    rest = modulo(-4 * size(sums), block)
    write (unit) repeat(achar(0), rest)
    close (unit)
  end subroutine

  function card(key, value) result(line)
    character(len=*), intent(in) :: key, value
    character(len=80) :: line
    line = key
    line(9:10) = "= "
    line(11:30) = adjustr(value // repeat(" ", 20 - len(value)))
  end function

  function text(number) result(digits)
    integer, intent(in) :: number
    character(len=20) :: digits
    write (digits, "(i0)") number
  end function
end program
