import {
  type CctpEnd,
  type DevChain,
  fundNative,
  installCctp,
  sendFromDevAccount,
  startChain,
  tokenBalance,
} from '@purser/devnet'
import { type Address, networkByName } from '@purser/protocol'
import { encodeReceiveMessage } from '../src/partners/routing/cctp-calls.ts'
import { cctpContracts, cctpDomainOf } from '../src/partners/routing/cctp-contracts.ts'
import { anIris, type Burnt, type Iris } from './iris.ts'
import { aLiveStage, type LiveStage, nodeOf, type TestNode } from './live-stage.ts'
import type { Told } from './partner-double.ts'
import type { Managed } from './partner-stage.ts'
import { untilBooked } from './transfer-stage.ts'

/** Circle's own contracts on two chains; the service of its attesters is the test's. */
export interface CctpStage extends LiveStage {
  readonly base: DevChain
  readonly ethereum: DevChain
  readonly onBase: TestNode
  readonly onEthereum: TestNode
  readonly iris: Iris
  /** Fees and words as they usually are: one hundredth of a percent, and everything attested at once. */
  renew(): void
  /** A master with 100 USDC on Base, and gas on both chains unless told otherwise. */
  aTraveller(weiOnEthereum?: bigint): Promise<Managed>
  /** As anybody may: the dev account delivers the message of a burn. */
  claimAsStranger(burnt: Burnt): Promise<void>
  /** How many claims a master has signed. */
  claimsOf(master: Managed): Promise<number>
  usdcOn(chain: DevChain, address: Address): Promise<bigint>
}

const fees = [
  { finalityThreshold: 1_000, minimumFee: 1 },
  { finalityThreshold: 2_000, minimumFee: 0 },
]
/** Of 50 USDC, which is what the stories send. */
export const usualFee = { rawFee: 5_000n } as const

export async function aCctpStage(): Promise<CctpStage> {
  const [base, ethereum] = await Promise.all([startChain({ network: 'base' }), startChain({ network: 'ethereum' })])
  const [onBase, onEthereum] = [nodeOf(base), nodeOf(ethereum)]
  const iris = await anIris(onBase)
  const [here, there] = [endOf(base), endOf(ethereum)]
  await Promise.all([installCctp(here, there, iris.attester), installCctp(there, here, iris.attester)])
  const stage = await aLiveStage([base, ethereum], { cctp: { baseUrl: iris.url } })
  return {
    ...stage,
    ...{ base, ethereum, onBase, onEthereum, iris },
    renew: () => Object.assign(iris, { fees, says: (burnt: Burnt) => burnt.complete(usualFee) }),
    async aTraveller(weiOnEthereum = 10n ** 18n) {
      const master = await stage.aMaster()
      await fundNative(ethereum, master.address, weiOnEthereum)
      await untilBooked(stage.world, ethereum)
      return master
    },
    async claimAsStranger(burnt) {
      const { message, attestation } = onlyMessage(await burnt.complete(usualFee))
      await sendFromDevAccount(ethereum, there.messageTransmitter, encodeReceiveMessage(message, attestation))
    },
    claimsOf: ({ address }) => stage.countOf(address, 'ethereum'),
    usdcOn: (chain, address) => tokenBalance(chain, 'USDC', address),
    async stop() {
      await stage.stop()
      await iris.stop()
      await Promise.all([base.stop(), ethereum.stop()])
    },
  }
}

function endOf(chain: DevChain): CctpEnd {
  const network = networkByName(chain.network)
  const usdc = chain.tokens.USDC
  const domain = network && cctpDomainOf(network)
  if (network === undefined || usdc === undefined || domain === undefined) throw new Error('no chain of Circle’s')
  return { chain, domain, usdc, ...cctpContracts(network) }
}

interface Deliverable {
  readonly message: `0x${string}`
  readonly attestation: `0x${string}`
}

function onlyMessage(told: Told): Deliverable {
  const { messages } = (told as { json: { messages: Deliverable[] } }).json
  const [message] = messages
  if (message === undefined) throw new Error('nothing is attested')
  return message
}
