import { createLimiter } from '../../platform/http/limits.ts'
import { bindOperations } from '../../platform/operation.ts'
import { createSignal, type Signal } from '../../platform/signal.ts'
import { bindTasks } from '../../platform/work/runner.ts'
import { WebhookWorker } from './delivery/worker.ts'
import { Listeners } from './listen/listeners.ts'
import { listenOperations } from './listen/routes.ts'
import type { Deps } from './ports.ts'
import { redeliveryLimit } from './redeliveries.ts'
import { eventOperations, webhookOperations } from './routes.ts'
import { expiries } from './tasks.ts'

export { WebhookWorker } from './delivery/worker.ts'
export { webhookRecount } from './history.ts'
export { listenOperations } from './listen/routes.ts'
export { eventOperations, webhookOperations } from './routes.ts'
export { eventPayloads } from './schema.ts'
export { disableWebhooks } from './webhooks.ts'

/**
 * Builds the feature. Open streams read events when `committed` is raised, and the deliveries of new events are written when `due` is. `stop` ends all
 * open streams.
 */
export function createWebhooks(
  needs: Omit<Deps, 'listeners' | 'redeliveries' | 'deliveriesWaiting'>,
  { committed, due }: { readonly committed: Signal; readonly due: Signal },
) {
  const listeners = new Listeners(needs)
  const waiting = createSignal()
  const redeliveries = createLimiter(redeliveryLimit, needs.clock)
  const deps: Deps = { ...needs, listeners, redeliveries, deliveriesWaiting: waiting.raise }
  committed.listen(() => listeners.wake())
  return {
    deps,
    operations: bindOperations(deps, [...webhookOperations, ...eventOperations, ...listenOperations]),
    loops: bindTasks(deps, expiries),
    stop: () => listeners.stop(),
    startDelivering(): Pick<WebhookWorker, 'stop'> {
      const worker = new WebhookWorker(deps)
      const ignores = [due.listen(() => worker.wakeForEvents()), waiting.listen(() => worker.wake())]
      return {
        stop() {
          for (const ignore of ignores) ignore()
          return worker.stop()
        },
      }
    },
  }
}

export type { Deps as WebhookDeps } from './ports.ts'
