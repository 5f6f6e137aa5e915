import type { Chance } from './chance.ts'
import type { Theme } from './lies.ts'
import { type Faults, noFaults } from './nodes.ts'

/** The state of the nodes in a round, and the subject that the lying node lies about. */
export interface Weather {
  readonly theme: Theme
  readonly faults: readonly Faults[]
}

interface Nodes {
  readonly count: number
  /** The index of the node that may lie; below zero for none. */
  readonly faulty: number
  /** The subjects that the lying node may lie about. */
  readonly themes: readonly Theme[]
}

export function weatherOf(chance: Chance, { count, faulty, themes }: Nodes): Weather {
  const places = Array.from({ length: count }, (_, place) => place)
  if (count < 3 || !chance.happens(0.4))
    return { theme: chance.pick(themes), faults: places.map((place) => faultsOf(chance, place === faulty)) }
  const halting = chance.below(count)
  const faults = places.map((place) => stormAt(chance, { isFaulty: place === faulty, isHalting: place === halting }))
  return { theme: chance.pick(['all-paid', 'all-paid', 'ahead']), faults }
}

function faultsOf(chance: Chance, isFaulty: boolean): Faults {
  return {
    isDown: chance.happens(isFaulty ? 0.1 : 0.03),
    isHanging: chance.happens(isFaulty ? 0.15 : 0.05),
    isPartial: chance.happens(0.1),
    isLate: chance.happens(isFaulty ? 0.3 : 0.15),
    isIndexing: chance.happens(0.1),
    logBlocksMax: chance.pick([1, 3, 1_000_000, 1_000_000]),
    lies: isFaulty ? chance.pick([0, 0.2, 0.6, 1]) : 0,
    isSilent: isFaulty && chance.happens(0.3),
  }
}

/** One node lies as harmfully as it can, and another is behind or hangs. */
function stormAt(
  chance: Chance,
  { isFaulty, isHalting }: { readonly isFaulty: boolean; readonly isHalting: boolean },
): Faults {
  if (isFaulty) return { ...noFaults(), lies: 1 }
  if (!isHalting) return noFaults()
  return { ...noFaults(), ...chance.pick([{ isLate: true }, { isIndexing: true }, { isHanging: true }]) }
}
