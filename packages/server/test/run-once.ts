import type { Deps } from '../src/platform/ctx.ts'
import type { RecurringByNetwork } from '../src/platform/job.ts'
import { bindLoops } from '../src/platform/work/runner.ts'

/** Runs recurring work once on each of its networks, to its end. */
export async function runOnce<D extends Deps>(deps: D, work: RecurringByNetwork<D>): Promise<void> {
  for (const loop of bindLoops(deps, [work])) await loop.run()
}
