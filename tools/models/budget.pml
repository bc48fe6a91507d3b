/* Budgets (storage/budgets, queue/internal/account, queue/internal/overspend, lua/job_move.lua): workers
 * fetch jobs and report what these spend, a report at the limit holds its job, an operator raises the
 * budget and deletes it, and visits release the jobs that the budget holds. The store may be killed between two
 * writes of a report; the worker then repeats it.
 *
 * models_test.go checks, and shows to fail without its guard:
 *
 *   GUARD_SUM       beyond the limit, each job that runs or is being fetched reports once at most
 *   GUARD_FETCH     the same: no other job is fetched
 *   GUARD_REVISION  no job is held for good by a budget that was deleted or raised
 *   GUARD_DROP      a visit does not forget a job that was held again meanwhile
 *   GUARD_MARK      each report is counted once by the sum, also if it was interrupted
 */
#ifndef GUARD_SUM
#define GUARD_SUM 1
#endif
#ifndef GUARD_FETCH
#define GUARD_FETCH 1
#endif
#ifndef GUARD_REVISION
#define GUARD_REVISION 1
#endif
#ifndef GUARD_DROP
#define GUARD_DROP 1
#endif
#ifndef GUARD_MARK
#define GUARD_MARK 1
#endif

#define JOBS 2
#define REPORTS 3 /* of each job */

mtype = { pending, running, held, ended };

mtype state[JOBS] = pending; /* of the job */
byte moves[JOBS];          /* its run, which changes with each move */
byte ledger[JOBS];          /* the last report that the ledger has */
bool mark[JOBS];            /* the sums have a report that the ledger does not have */
bool listed[JOBS];          /* among the jobs that the budget holds */

byte spent;                 /* the sum of the day */
byte limit = 2;             /* of the budget; 0: it was deleted */
byte revision;              /* of the tenant's budgets */
bool due;                   /* the budget is to be visited */
byte cuts = 1;              /* how often the store may still be killed */

#define REACHED(l, sum) ((l) > 0 && (sum) >= (l))

proctype Worker(byte i) {
	byte seq = 1, known_spent, known_limit, known_revision, added;
	bool reached, again;

	do
	:: seq > REPORTS -> break
	:: else ->
		if
		:: state[i] == running
		:: state[i] == pending && (!GUARD_FETCH || !REACHED(limit, spent)) ->
			/* The fetch has read the sum; the claim follows. */
			d_step { state[i] == pending; state[i] = running; moves[i]++ }
		fi;
		/* The replica decides by what it has read before. */
		d_step { known_spent = spent; known_limit = limit; known_revision = revision; }
		atomic { /* the script, of which a kill leaves the first writes */
			again = false;
			if
			:: GUARD_MARK && mark[i] -> ledger[i]++; mark[i] = false; again = true
			:: else
			fi;
			added = (ledger[i] < seq -> 1 : 0);
			reached = REACHED(known_limit, known_spent + added);
			if
			:: GUARD_SUM && REACHED(known_limit, spent + added) != reached -> again = true
			:: else
			fi;
			if
			:: GUARD_REVISION && known_revision != revision -> again = true
			:: else
			fi;
			if
			:: again || state[i] != running
			:: else ->
				spent = spent + added;
				mark[i] = (added > 0);
				assert(limit == 0 || spent <= limit + JOBS - 1);
				if
				:: cuts > 0 -> cuts--; again = true
				:: true
				fi;
				if
				:: !again && reached ->
					listed[i] = true;
					if
					:: cuts > 0 -> cuts--; again = true
					:: true
					fi
				:: else
				fi;
				if
				:: !again -> /* one write: the run and the ledger */
					ledger[i] = ledger[i] + added;
					moves[i]++;
					state[i] = (reached -> held : running);
					mark[i] = false;
					seq++
				:: else
				fi
			fi
		}
	od;
	atomic { state[i] == running || state[i] == pending; state[i] = ended; moves[i]++ }
}

proctype Operator() {
	d_step { limit = 4; revision++; }
	due = true;
	d_step { limit = 0; revision++; }
	due = true;
}

proctype Visits() {
	byte i, seen;
	bool free;

end:	do
	:: due ->
		due = false;
		i = 0;
		do
		:: i == JOBS -> break
		:: else ->
			free = listed[i] && !REACHED(limit, spent);
			if
			:: free ->
				d_step { /* a move, if it is held */
					if
					:: state[i] == held -> state[i] = pending; moves[i]++
					:: else
					fi;
					seen = moves[i];
				}
				d_step {
					if
					:: !GUARD_DROP || moves[i] == seen -> listed[i] = false
					:: else
					fi
				}
			:: else
			fi;
			i++
		od
	od
}

init {
	atomic { run Worker(0); run Worker(1); run Operator(); run Visits() }
	/* Nothing else can happen. */
	timeout;
	assert(state[0] == ended && state[1] == ended);
	assert(spent == ledger[0] + ledger[1] && ledger[0] == REPORTS && ledger[1] == REPORTS);
}
