import { Session } from 'node:inspector/promises'

export interface Profile {
  /** Share of the busy time (0 to 1) by package, folder or part of the engine. */
  end(): Promise<Record<string, number>>
}

/**
 * Samples this process's JavaScript stack until ended. Shares are of busy samples, so they measure CPU time, not
 * waiting.
 */
export async function startProfile(): Promise<Profile> {
  const session = new Session()
  session.connect()
  await session.post('Profiler.enable')
  await session.post('Profiler.setSamplingInterval', { interval: 500 })
  await session.post('Profiler.start')
  return {
    async end() {
      const { profile } = await session.post('Profiler.stop')
      session.disconnect()
      const samples = new Map<number, number>()
      for (const id of profile.samples ?? []) samples.set(id, (samples.get(id) ?? 0) + 1)
      return shares(
        profile.nodes.map(({ id, callFrame }) => ({ place: placeOf(callFrame), count: samples.get(id) ?? 0 })),
      )
    },
  }
}

function shares(spent: readonly { place: string; count: number }[]): Record<string, number> {
  const byPlace = new Map<string, number>()
  let busy = 0
  for (const { place, count } of spent) {
    if (place === 'idle' || count === 0) continue
    byPlace.set(place, (byPlace.get(place) ?? 0) + count)
    busy += count
  }
  return Object.fromEntries([...byPlace].map(([place, count]) => [place, count / busy]))
}

/** A package, a folder of ours, or a part of the engine. */
function placeOf({ functionName, url }: { functionName: string; url: string }): string {
  if (functionName === '(idle)') return 'idle'
  if (functionName === '(garbage collector)') return 'garbage collector'
  if (functionName === '(program)') return 'engine and system calls'
  if (url.startsWith('node:')) return 'Node internals'
  const installed = /.*\/node_modules\/((?:@[^/]+\/)?[^/]+)/.exec(url)?.[1]
  if (installed !== undefined) return installed
  const ours = /\/packages\/([^/]+)\/src\/([^/]+)/.exec(url)
  if (ours !== null) return ours[1] === 'server' ? `server ${ours[2]}` : `${ours[1]}`
  if (url !== '') return 'bench'
  return `native ${functionName === '' ? 'functions' : functionName}`
}
