import { type Address, type NetworkName, networkByName } from '@purser/protocol'
import type { Chains } from '../../chain/port.ts'
import type { Deps } from '../../platform/ctx.ts'
import type { OracleAnswer } from './port.ts'

const defaultAddress: Address = '0x40C57923924B5c5c5455c48D93317139ADDaC8fb'

/**
 * Chainalysis' sanctions oracle, in order of preference. It has an identical list on each of these chains and none on Tempo or test networks.
 * Source: go.chainalysis.com/chainalysis-oracle-docs.html.
 */
const oracles: readonly (readonly [NetworkName, Address])[] = [
  ['ethereum', defaultAddress],
  ['base', '0x3A91A31cB3dC49b4db9Ce721F50a9D076c8D739B'],
  ['arbitrum', defaultAddress],
  ['optimism', defaultAddress],
  ['polygon', defaultAddress],
]
const networksMax = 2

/**
 * Addresses that OFAC listed in 2022, queried with each request: a contract that lists none of them is not the oracle. `cleanProbe` is an unused
 * address that detects a contract that reports every address as sanctioned.
 */
const listedProbes: readonly Address[] = [
  '0x098B716B8Aaf21512996dC57EB0615e2383E2f96',
  '0x7F367cC41522cE07553e823bf3be79A889DEbe1B',
  '0xd882cFc20F52f2599D84b8e8D58C7FB62cfE344b',
]
const cleanProbe: Address = '0x00000000000000000000000000000000005A11C0'
/** A node whose head is older than this is behind. */
const headAgeSecondsMax = 3_600

/** Most addresses in one request, not counting the probes. */
export const addressesPerRequest = 100

export interface OracleRound {
  readonly networks: readonly string[]
  of(index: number): OracleAnswer
}

export type Oracle = (addresses: readonly Address[]) => Promise<OracleRound>

/** Whether a node of this deployment can reach an oracle. */
export function hasOracle(chains: Chains): boolean {
  return oracles.some(([name]) => chains.configured.some((network) => network.name === name))
}

/**
 * Queries the oracle on the first two configured networks that have it. One `sanctioned` answer is enough; `clean` needs all of them, so that a
 * single failing or wrong node cannot clear an address.
 */
export function createOracle({
  chains,
  clock,
  log,
}: Pick<Deps, 'clock' | 'log'> & { readonly chains: Chains }): Oracle {
  const configured = new Set<string>(chains.configured.map(({ name }) => name))
  const selected = oracles.filter(([name]) => configured.has(name)).slice(0, networksMax)
  const queryOne = async ([name, contract]: (typeof oracles)[number], addresses: readonly Address[]) => {
    const network = networkByName(name)
    if (network === undefined) throw new Error(`there is no network ${name}`)
    const { timestampSeconds, sanctioned } = await chains
      .on(network)
      .sanctions(contract, [...listedProbes, cleanProbe, ...addresses])
    if (clock.now().getTime() / 1_000 - Number(timestampSeconds) > headAgeSecondsMax)
      throw new Error('the node is far behind')
    const probes = sanctioned.slice(0, listedProbes.length + 1)
    if (!probes.slice(0, -1).includes(true) || probes.at(-1) !== false)
      throw new Error('the contract is not the sanctions oracle')
    return sanctioned.slice(probes.length)
  }
  return async (addresses) => {
    const answers = await Promise.all(
      selected.map((oracle) =>
        queryOne(oracle, addresses).catch((error: unknown) => {
          log.warn({ err: error, network: oracle[0] }, 'the sanctions oracle could not be queried')
          return undefined
        }),
      ),
    )
    return {
      networks: selected.map(([name]) => name),
      of: (index) => oracleAnswer(answers.map((answer) => answer?.[index])),
    }
  }
}

/** Combines the answers of several oracles; undefined is a failed one. */
export function oracleAnswer(answers: readonly (boolean | undefined)[]): OracleAnswer {
  if (answers.length === 0) return 'none'
  if (answers.includes(true)) return 'sanctioned'
  return answers.includes(undefined) ? 'failed' : 'clean'
}
