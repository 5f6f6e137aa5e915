import { type Address, type NetworkName, networkByName } from '@purser/protocol'
import type { Chains } from '../../chain/port.ts'
import type { Deps } from '../../platform/ctx.ts'
import type { OracleAnswer } from './port.ts'

const usual: Address = '0x40C57923924B5c5c5455c48D93317139ADDaC8fb'

/**
 * Chainalysis' sanctions oracle, in the order of asking: it keeps the same list on each of these chains and has none on Tempo or a test network.
 * Source: go.chainalysis.com/chainalysis-oracle-docs.html.
 */
const oracles: readonly (readonly [NetworkName, Address])[] = [
  ['ethereum', usual],
  ['base', '0x3A91A31cB3dC49b4db9Ce721F50a9D076c8D739B'],
  ['arbitrum', usual],
  ['optimism', usual],
  ['polygon', usual],
]
const networksMax = 2

/**
 * Addresses that OFAC listed in 2022 and that are asked about with the others: an oracle that knows none of them is not the oracle. The last,
 * which belongs to nobody, tells one that calls everybody sanctioned.
 */
const listedProbes: readonly Address[] = [
  '0x098B716B8Aaf21512996dC57EB0615e2383E2f96',
  '0x7F367cC41522cE07553e823bf3be79A889DEbe1B',
  '0xd882cFc20F52f2599D84b8e8D58C7FB62cfE344b',
]
const cleanProbe: Address = '0x00000000000000000000000000000000005A11C0'
/** A node whose head is older than this is not at the head. */
const headAgeSecondsMax = 3_600

/** How many addresses are asked about in one request, the probes not counted. */
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
 * Asks the first two configured networks that have the oracle. One that says sanctioned is believed; clean needs all that were asked, so
 * that neither a node that fails nor one that lies on its own clears anybody.
 */
export function createOracle({
  chains,
  clock,
  log,
}: Pick<Deps, 'clock' | 'log'> & { readonly chains: Chains }): Oracle {
  const configured = new Set<string>(chains.configured.map(({ name }) => name))
  const asked = oracles.filter(([name]) => configured.has(name)).slice(0, networksMax)
  const askOne = async ([name, contract]: (typeof oracles)[number], addresses: readonly Address[]) => {
    const network = networkByName(name)
    if (network === undefined) throw new Error(`no network is called ${name}`)
    const { timestampSeconds, sanctioned } = await chains
      .on(network)
      .sanctions(contract, [...listedProbes, cleanProbe, ...addresses])
    if (clock.now().getTime() / 1_000 - Number(timestampSeconds) > headAgeSecondsMax)
      throw new Error('the node is far behind')
    const probes = sanctioned.slice(0, listedProbes.length + 1)
    if (!probes.slice(0, -1).includes(true) || probes.at(-1) !== false)
      throw new Error('what answers is not the sanctions oracle')
    return sanctioned.slice(probes.length)
  }
  return async (addresses) => {
    const answers = await Promise.all(
      asked.map((oracle) =>
        askOne(oracle, addresses).catch((error: unknown) => {
          log.warn({ err: error, network: oracle[0] }, 'the sanctions oracle could not be asked')
          return undefined
        }),
      ),
    )
    return {
      networks: asked.map(([name]) => name),
      of: (index) => oracleAnswer(answers.map((answer) => answer?.[index])),
    }
  }
}

/** What several oracles say together; undefined is one that failed. */
export function oracleAnswer(answers: readonly (boolean | undefined)[]): OracleAnswer {
  if (answers.length === 0) return 'none'
  if (answers.includes(true)) return 'sanctioned'
  return answers.includes(undefined) ? 'failed' : 'clean'
}
