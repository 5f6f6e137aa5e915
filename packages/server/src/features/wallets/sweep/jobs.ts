import type { Recurring } from '../../../platform/job.ts'
import type { Deps } from '../ports.ts'
import { autoSweep } from './auto.ts'
import { signSweeps } from './sign.ts'
import { sweepOnTempo } from './tempo.ts'

/** Recurring work of sweeps. */
export const walletSweeps: readonly Recurring<Deps>[] = [autoSweep, signSweeps, sweepOnTempo]
