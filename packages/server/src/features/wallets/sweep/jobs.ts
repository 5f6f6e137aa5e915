import type { Recurring } from '../../../platform/job.ts'
import { autoSweep } from './auto.ts'
import { signSweeps } from './sign.ts'
import { sweepOnTempo } from './tempo.ts'

/** What is due again and again for sweeps. */
export const walletSweeps: readonly Recurring[] = [autoSweep, signSweeps, sweepOnTempo]
