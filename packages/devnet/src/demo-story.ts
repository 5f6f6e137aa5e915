import { castOf } from './demo-cast.ts'
import { checkDepositEvents } from './demo-deposits.ts'
import { checkDeliveries, type Listening } from './demo-listen.ts'
import { runMppSteps } from './demo-mpp.ts'
import { runProofSteps } from './demo-proof.ts'
import type { Provider } from './demo-provider.ts'
import { runSessionSteps } from './demo-session.ts'
import { runTreasurySteps } from './demo-treasury.ts'
import { runX402Steps } from './demo-x402.ts'
import type { Dev } from './dev.ts'
import type { Step } from './narrator.ts'

interface Stage {
  readonly dev: Dev
  readonly provider: Provider
  readonly listening: Listening
  /** Stops everything in the demo. */
  readonly stopAll: () => Promise<void>
}

/** The whole demo. Each step is checked at its source: on the wire, on the chain, in the payment log, by the verifier. */
export async function runAllSteps({ dev, provider, listening, stopAll }: Stage, step: Step): Promise<void> {
  const cast = await castOf(dev, provider)
  await runX402Steps(cast, step)
  await runMppSteps(cast, step)
  const research = await runSessionSteps(cast, step)
  await step("Through purser listen the provider's own machine receives the events too, signed", () =>
    checkDeliveries(listening, research),
  )
  const treasury = await step(
    'Money comes to its own wallet, to a managed one and to a customer’s address: it receives an event for each',
    () => checkDepositEvents(cast, listening),
  )
  await runTreasurySteps(cast, treasury, { step, listening })
  await runProofSteps(cast, research, { step, stopAll })
}
