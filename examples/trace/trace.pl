#!/usr/bin/perl
# Events of a Perl program, sent to `swathe trace collect` by its protocol (docs/trace.md).
#
#   perl trace.pl 127.0.0.1 8430
use strict;
use warnings;
use IO::Select;
use IO::Socket::INET;
use POSIX qw(strftime);
use Sys::Hostname;
use Time::HiRes qw(gettimeofday sleep);

my ($collector, $port) = @ARGV;
my $token = $ENV{SWATHE_TRACE_TOKEN} // '-';
my $socket = IO::Socket::INET->new(PeerAddr => $collector, PeerPort => $port)
    or die "expected a collector at $collector:$port: $!\n";
print $socket "SWATHE-TRACE 1 ", hostname(), " $$ $token\n";
my $answer = <$socket> // '';
die "expected OK from the collector, found $answer\n" unless $answer =~ /^OK$/;
my $select = IO::Select->new($socket);
my $rest = '';

# Values with a space, quotes or other bytes stand in quotes.
sub quote {
    my ($value) = @_;
    return $value if $value =~ /^[!#-<>-\[\]-~]+$/;
    my %escapes = ('"' => '\\"', '\\' => '\\\\', "\n" => '\\n', "\r" => '\\r', "\t" => '\\t');
    $value =~ s/(["\\\n\r\t])/$escapes{$1}/g;
    return "\"$value\"";
}

sub head {
    my ($name) = @_;
    my ($seconds, $microseconds) = gettimeofday();
    my $date = strftime('%Y%m%d%H%M%S', gmtime $seconds);
    return sprintf 'DATE=%s.%06d HOST=%s PROG=reduce LVL=Usage NL.EVNT=%s',
        $date, $microseconds, quote(hostname()), $name;
}

# The collector asks for the time, to compare the clocks: answer what has come.
sub answer_clock {
    while ($select->can_read(0)) {
        sysread($socket, $rest, 4096, length $rest) or last;
        my ($seconds, $microseconds) = gettimeofday();
        while ($rest =~ s/^CLOCK (\S+)\n//) {
            printf $socket "%s ECHO=%s RECEIVED=%d%06d000\n",
                head('CLOCK_REPLY'), $1, $seconds, $microseconds;
        }
    }
    $socket->flush();
}

# Send an event: its name, then pairs of key and value.
sub event {
    my ($name, @fields) = @_;
    my $line = head($name) . " PID=$$ THREAD=1";
    while (my ($key, $value) = splice @fields, 0, 2) {
        $line .= " $key=" . quote($value);
    }
    print $socket "$line\n";
    $socket->flush();
    answer_clock();
}

event('REDUCE_START', GRANULE => 'night 12');
sleep 0.005;
event('REDUCE_END', GRANULE => 'night 12', BYTES => 25920, RESULT => 'ok');
close $socket;
