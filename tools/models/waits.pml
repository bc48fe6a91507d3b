/* The wait for an event. An activation that waits for an event looks for it, and then leaves its run
 * asleep; a sender stores an event, and wakes a run that sleeps. The stored run changes with every
 * change of the job, and with an event for a job that is active (version): the move that leaves the
 * run asleep compares it. Events are found after the version is read.
 *
 * Claim: a run to which the event was sent ends.
 *
 * With -DUNTOUCHED the event of an active job does not change the run: the claim must fail.
 */
mtype = { running, asleep, pending, ended };
mtype state = running;
byte version = 0;
bool event = false;

active proctype activation() {
  byte seen;
  bool found;
  do
  :: state == ended -> break
  :: atomic { state == pending -> state = running; version++ }
  :: state == running ->
     seen = version;          /* Find */
     found = event;           /* the events of the job */
     if
     :: found -> atomic { state = ended; version++ }
     :: else ->
        atomic {
          if
          :: version == seen -> state = asleep; version++
          :: else
          fi
        }
     fi
  od
}

active proctype sender() {
  byte seen;
  mtype was;
  bool sent = false;
  do
  :: sent -> break
  :: else ->
     atomic { seen = version; was = state }
     atomic {
       if
       :: version != seen
       :: version == seen && was == asleep -> event = true; state = pending; version++; sent = true
       :: version == seen && was != asleep ->
          event = true;
#ifndef UNTOUCHED
          version++;
#endif
          sent = true
       fi
     }
  od
}

ltl ends { <> (state == ended) }
