import type { Recurring } from '../../../platform/job.ts'
import { autoSweep } from './auto.ts'
import { resolveSweeps } from './resolve.ts'
import { sweepOnTempo } from './tempo.ts'

/** What is due again and again for sweeps. */
export const walletSweeps: readonly Recurring[] = [autoSweep, resolveSweeps, sweepOnTempo]
