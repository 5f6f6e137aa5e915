import type { Address } from '@purser/protocol'
import type { Oracle } from './oracle.ts'
import type { OracleAnswer } from './port.ts'

/** Addresses whose answers are kept, and addresses that wait for one. The oldest are forgotten first. */
const answersMax = 50_000
const wantedMax = 5_000
const freshMs = 86_400_000

export interface OracleMemory {
  /** The kept answer; `unknown` for an address that the oracle has not judged in the last day, which is then looked up by `refresh`. */
  of(address: string): OracleAnswer
  /** Asks the oracle about these addresses and keeps what it says. */
  ask: Oracle
  /** Looks up addresses that wait for an answer, as many as one request takes. */
  refresh(): Promise<void>
}

/** Keeps the oracle's answers in memory, for callers that must not wait for a node. */
export function createOracleMemory(oracle: Oracle, now: () => Date, requestMax: number): OracleMemory {
  const answers = new Map<string, { readonly answer: OracleAnswer; readonly atMs: number }>()
  const wanted = new Set<string>()
  const keep = (address: string, answer: OracleAnswer): void => {
    if (answer === 'failed') return
    answers.delete(address)
    answers.set(address, { answer, atMs: now().getTime() })
    forgetOldest(answers, answersMax)
  }
  const ask: Oracle = async (addresses) => {
    const round = await oracle(addresses)
    for (const [index, address] of addresses.entries()) keep(address.toLowerCase(), round.of(index))
    return round
  }
  return {
    ask,
    of(address) {
      const plain = address.toLowerCase()
      const known = answers.get(plain)
      const isFresh = known !== undefined && now().getTime() - known.atMs < freshMs
      if (!isFresh && wanted.size < wantedMax) wanted.add(plain)
      // An old answer against an address still counts.
      return isFresh || known?.answer === 'sanctioned' ? known.answer : 'unknown'
    },
    async refresh() {
      const next = [...wanted].slice(0, requestMax)
      if (next.length === 0) return
      for (const address of next) wanted.delete(address)
      await ask(next.map((address): Address => `0x${address.slice(2)}`))
    },
  }
}

function forgetOldest(map: Map<string, unknown>, max: number): void {
  for (const key of map.keys()) {
    if (map.size <= max) return
    map.delete(key)
  }
}
