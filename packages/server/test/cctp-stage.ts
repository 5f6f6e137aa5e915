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
import { cctpContracts, encodeReceiveMessage } from '../src/partners/routing/cctp-calls.ts'
import { anIris, type Burnt, type Iris } from './iris.ts'
import { aLiveStage, type LiveStage, nodeOf, type TestNode } from './live-stage.ts'
import type { PartnerResponse } from './partner-double.ts'
import type { Managed } from './partner-stage.ts'
import { untilBooked } from './transfer-stage.ts'

/** Circle's own contracts on two chains. The test provides the attestation service. */
export interface CctpStage extends LiveStage {
  readonly base: DevChain
  readonly ethereum: DevChain
  readonly onBase: TestNode
  readonly onEthereum: TestNode
  readonly iris: Iris
  /** Resets fees and answers to the usual ones: a fee of one hundredth of a percent, and everything attested at once. */
  renew(): void
  /** Returns a master with 100 USDC on Base, and by default with gas on both chains. */
  aTraveller(weiOnEthereum?: bigint): Promise<Managed>
  /** Delivers the message of a burn from the dev account, as anybody may. */
  claimAsStranger(burnt: Burnt): Promise<void>
  /** Delivers an attested message from the dev account. */
  deliver(reported: PartnerResponse): Promise<void>
  /** The number of claims that a master has signed. */
  claimsOf(master: Managed): Promise<number>
  usdcOn(chain: DevChain, address: Address): Promise<bigint>
}

const fees = [
  { finalityThreshold: 1_000, minimumFee: 1 },
  { finalityThreshold: 2_000, minimumFee: 0 },
]
/** The fee of 50 USDC, the amount in the tests. */
export const usualFee = { rawFee: 5_000n } as const

/** `nodesOfEthereum` returns the addresses of the nodes of Ethereum, given that of the chain itself. */
export async function aCctpStage(nodesOfEthereum?: (url: string) => Promise<readonly string[]>): Promise<CctpStage> {
  const [base, ethereum] = await Promise.all([startChain({ network: 'base' }), startChain({ network: 'ethereum' })])
  const [onBase, onEthereum] = [nodeOf(base), nodeOf(ethereum)]
  const iris = await anIris(onBase)
  const [here, there] = [endOf(base), endOf(ethereum)]
  const deliver = async (reported: PartnerResponse): Promise<void> => {
    const { message, attestation } = onlyMessage(reported)
    await sendFromDevAccount(ethereum, there.messageTransmitter, encodeReceiveMessage({ message, attestation }))
  }
  await Promise.all([installCctp(here, there, iris.attester), installCctp(there, here, iris.attester)])
  const rpcUrls = nodesOfEthereum && { ethereum: [...(await nodesOfEthereum(ethereum.rpcUrl))] }
  const stage = await aLiveStage([base, ethereum], { cctp: { baseUrl: iris.url } }, {}, rpcUrls)
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
    claimAsStranger: async (burnt) => deliver(await burnt.complete(usualFee)),
    deliver,
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
  const domain = network?.cctp?.domain
  if (network === undefined || usdc === undefined || domain === undefined) throw new Error('no chain of Circle’s')
  return { chain, domain, usdc, ...cctpContracts(network) }
}

interface Deliverable {
  readonly message: `0x${string}`
  readonly attestation: `0x${string}`
}

function onlyMessage(reported: PartnerResponse): Deliverable {
  const { messages } = (reported as { json: { messages: Deliverable[] } }).json
  const [message] = messages
  if (message === undefined) throw new Error('nothing is attested')
  return message
}
