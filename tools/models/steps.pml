/* The replay of durable steps. A run asks for STEPS steps, one after the other. Each of REPLICAS
 * replicas may take the run under a lease, replay it, and be killed, or lose its lease while it
 * works. A replica executes a step whose record it has not loaded, and then records it by
 * compare-and-set: only under the lease that it holds (FENCED), and only if the step has no
 * record (ONCE).
 *
 * Claims:
 *   no step with a recorded result runs again under the lease that holds the run;
 *   a recorded result never changes;
 *   the run completes with all steps recorded, and once.
 *
 * With -DUNFENCED the record ignores the lease and overwrites; with -DUNLOADED the replay ignores
 * the records. Both must fail.
 */
#define STEPS 3
#define REPLICAS 2
#define KILLS 2

byte epoch = 0;          /* of the lease; 0 before the first */
bool leased = false;
bool completed = false;
byte record[STEPS];      /* the epoch that recorded the step, 0 for none */
byte kills = 0;

proctype replica() {
  byte mine, next, i;
  byte loaded[STEPS];
  do
  :: completed -> break
  :: atomic { !leased && !completed ->
       epoch++; leased = true; mine = epoch;
       /* Load reads the records once, under the lease. */
       i = 0;
       do
       :: i < STEPS -> 
#ifdef UNLOADED
          loaded[i] = 0;
#else
          loaded[i] = record[i];
#endif
          i++
       :: else -> break
       od;
       next = 0
     };
     do
     :: next == STEPS ->
        /* The ack of the job compares the lease. */
        atomic {
          if
          :: leased && epoch == mine ->
             assert(!completed);
             completed = true; leased = false
          :: else
          fi
        };
        break
     :: next < STEPS && loaded[next] != 0 -> next++
     :: next < STEPS && loaded[next] == 0 ->
        /* The function of the step runs. */
        atomic { assert(!(leased && epoch == mine && record[next] != 0)) };
        /* The record. */
        atomic {
          if
#ifdef UNFENCED
          :: true ->
             assert(record[next] == 0 || record[next] == mine);
             record[next] = mine; next++
#else
          :: leased && epoch == mine && record[next] == 0 -> record[next] = mine; next++
          :: else -> goto lost
#endif
          fi
        }
     :: atomic { kills < KILLS && leased && epoch == mine -> kills++; leased = false; goto lost }
     od;
lost: skip
  od
}

/* A lease that runs out while its replica still works. */
proctype clock() {
  byte lapses = 0;
  do
  :: completed -> break
  :: atomic { lapses < 2 && leased -> leased = false; lapses++ }
  :: lapses == 2 -> break
  od
}

init {
  atomic { run replica(); run replica(); run clock() }
}

ltl ends { <> completed }
ltl whole { [] (completed -> (record[0] != 0 && record[1] != 0 && record[2] != 0)) }
