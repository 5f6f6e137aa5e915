import type { Marks } from '../../src/platform/witness/witness.ts'

/** Marks of the witness in memory, by deployment. */
export function marksIn(kept: Map<string, Set<string>>): Marks {
  const of = (deployment: string): Set<string> => {
    const known = kept.get(deployment) ?? new Set()
    kept.set(deployment, known)
    return known
  }
  return {
    list: async (deployment) => [...of(deployment)],
    async create(deployment, name) {
      if (of(deployment).has(name)) return 'taken'
      of(deployment).add(name)
      return 'created'
    },
    async remove(deployment, names) {
      for (const name of names) of(deployment).delete(name)
    },
  }
}
