import { bytesToHex, type Hex, type Network, networkByName } from '@purser/protocol'
import { encodeAbiParameters } from 'viem'
import { privateKeyToAccount } from 'viem/accounts'
import type { TestDatabase } from '../database.ts'
import { SimChain } from './chain.ts'
import { type Chance, chanceOf } from './chance.ts'
import { makeShares } from './life.ts'
import { type Payer, separatorOf } from './purchase.ts'
import { aSweeper } from './sweeps.ts'
import { openTheater } from './theater.ts'

/** What all seeds of a run share: one database with a settable clock, and some organisations. */
export type Stage = Awaited<ReturnType<typeof aStage>>

/** The number of selling organisations, beside the one that sweeps. */
const organisationCount = 4

/** Sets up a stage on a migrated database, which is dropped with it. */
export async function aStage(database: TestDatabase) {
  const theater = await openTheater(database, organisationCount + 1)
  const known = networkByName('eth-sepolia')
  if (known === undefined) throw new Error('no such network')
  const network: Network = { ...known, confirmationDepth: 3 }
  const [token] = network.tokens
  if (token === undefined) throw new Error('a network has a token')
  const [sweeping, ...tenants] = theater.tenants
  if (sweeping === undefined) throw new Error('there is no organisation')
  const sweeper = await aSweeper(theater.actingFor(sweeping))
  await makeShares(theater.db, network)
  await theater.states.keep('beginning')
  return {
    ...theater,
    clear: () => theater.states.putBack('beginning'),
    sweeper,
    network,
    token,
    payers: payersOf(payerCount),
    tenants,
  }
}

/** A new chain with the network's token. */
export function aChain(
  stage: Pick<Stage, 'network' | 'token' | 'signer' | 'sweeper'>,
  chance: Chance,
  timestamp: bigint,
): SimChain {
  const rules = {
    token: stage.token.address,
    settler: stage.signer.address,
    constants: constantsOf(stage),
    own: ownOf(stage),
    senderOf: () => stage.signer.address,
  }
  return new SimChain(rules, chance, { timestamp, depth: stage.network.confirmationDepth })
}

/** Accounts whose keys only the service has. */
function ownOf({ sweeper }: Pick<Stage, 'sweeper'>): ReadonlySet<string> {
  return new Set(sweeper.children.map((child) => child.toLowerCase()))
}

/** The token's constants, by the selector of the read. */
export function constantsOf({ network, token }: Pick<Stage, 'network' | 'token'>): ReadonlyMap<string, Hex> {
  const { name = '', version = '' } = token.eip712 ?? {}
  const words = (text: string): Hex => encodeAbiParameters([{ type: 'string' }], [text])
  return new Map<string, Hex>([
    ['0x06fdde03', words(name)],
    ['0x54fd4d50', words(version)],
    ['0x3644e515', bytesToHex(separatorOf(network, token))],
    // getEthBalance(address) of Multicall3.
    ['0x4d2301cc', `0x${(10n ** 18n).toString(16).padStart(64, '0')}`],
  ])
}

/** Payers whose signatures the service recovers, the same in every run. */
const payerCount = 48

function payersOf(count: number): readonly Payer[] {
  const chance = chanceOf(0)
  return Array.from({ length: count }, () => {
    const account = privateKeyToAccount(bytesToHex(chance.bytes(32)))
    return { address: account.address, sign: (digest) => account.sign({ hash: bytesToHex(digest) }) }
  })
}
