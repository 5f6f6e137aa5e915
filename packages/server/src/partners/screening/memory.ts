import type { Address } from '@purser/protocol'
import type { Oracle } from './oracle.ts'
import type { OracleAnswer } from './port.ts'

/** Most cached answers, and most addresses waiting for one. The oldest answers are dropped first. */
const answersMax = 50_000
const wantedMax = 5_000
const freshMs = 86_400_000

export interface OracleMemory {
  /** The cached answer; `unknown` for an address without an answer of the last day, which `refresh` then looks up. */
  of(address: string): OracleAnswer
  /** Queries the oracle about these addresses and caches the answers. */
  query: Oracle
  /** Looks up waiting addresses, as many as fit into one request. */
  refresh(): Promise<void>
}

/** Caches the oracle's answers for callers that must not wait for a node. */
export function createOracleMemory(oracle: Oracle, now: () => Date, requestMax: number): OracleMemory {
  const answers = new Map<string, { readonly answer: OracleAnswer; readonly atMs: number }>()
  const wanted = new Set<string>()
  const keep = (address: string, answer: OracleAnswer): void => {
    if (answer === 'failed') return
    answers.delete(address)
    answers.set(address, { answer, atMs: now().getTime() })
    forgetOldest(answers, answersMax)
  }
  const query: Oracle = async (addresses) => {
    const round = await oracle(addresses)
    for (const [index, address] of addresses.entries()) keep(address.toLowerCase(), round.of(index))
    return round
  }
  return {
    query,
    of(address) {
      const plain = address.toLowerCase()
      const known = answers.get(plain)
      const isFresh = known !== undefined && now().getTime() - known.atMs < freshMs
      if (!isFresh && wanted.size < wantedMax) wanted.add(plain)
      // An old `sanctioned` answer still counts.
      return isFresh || known?.answer === 'sanctioned' ? known.answer : 'unknown'
    },
    async refresh() {
      const next = [...wanted].slice(0, requestMax)
      if (next.length === 0) return
      for (const address of next) wanted.delete(address)
      await query(next.map((address): Address => `0x${address.slice(2)}`))
    },
  }
}

function forgetOldest(map: Map<string, unknown>, max: number): void {
  for (const key of map.keys()) {
    if (map.size <= max) return
    map.delete(key)
  }
}
