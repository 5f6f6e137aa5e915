import type { Deps } from '../src/platform/ctx.ts'
import type { RecurringTaskByNetwork } from '../src/platform/recurring-task.ts'
import { bindTasks } from '../src/platform/work/runner.ts'

/** Runs recurring work once on each of its networks, to its end. */
export async function runOnce<D extends Deps>(deps: D, work: RecurringTaskByNetwork<D>): Promise<void> {
  for (const loop of bindTasks(deps, [work])) await loop.run()
}
