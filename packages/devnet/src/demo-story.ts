import { castOf } from './demo-cast.ts'
import { hearOfDeposits } from './demo-deposits.ts'
import { hearOfIt, type Listening } from './demo-listen.ts'
import { tellOfMpp } from './demo-mpp.ts'
import { tellOfProof } from './demo-proof.ts'
import type { Provider } from './demo-provider.ts'
import { tellOfSession } from './demo-session.ts'
import { tellOfTreasury } from './demo-treasury.ts'
import { tellOfX402 } from './demo-x402.ts'
import type { Dev } from './dev.ts'
import type { Step } from './narrator.ts'

interface Stage {
  readonly dev: Dev
  readonly provider: Provider
  readonly listening: Listening
  /** Ends everything that stands on it. */
  readonly stopAll: () => Promise<void>
}

/** The whole story, each step checked where the truth is: on the wire, on the chain, in the payment log, by the verifier. */
export async function tellStory({ dev, provider, listening, stopAll }: Stage, step: Step): Promise<void> {
  const cast = await castOf(dev, provider)
  await tellOfX402(cast, step)
  await tellOfMpp(cast, step)
  const research = await tellOfSession(cast, step)
  await step("Through purser listen the provider's own machine hears of it too, signed", () =>
    hearOfIt(listening, research),
  )
  const treasury = await step(
    'Money comes to its own wallet, to a managed one and to a customer’s address: it hears of each',
    () => hearOfDeposits(cast, listening),
  )
  await tellOfTreasury(cast, treasury, { step, listening })
  await tellOfProof(cast, research, { step, stopAll })
}
