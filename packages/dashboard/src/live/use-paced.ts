import { useEffect, useRef } from 'react'

interface Pace {
  readonly want: () => void
  readonly stop: () => void
}

function paceOf(msMin: number, work: () => Promise<unknown>): Pace {
  let state: 'idle' | 'waiting' | 'working' = 'idle'
  let isWanted = false
  let timer: ReturnType<typeof setTimeout> | undefined
  const run = async () => {
    state = 'working'
    isWanted = false
    await work().catch(() => undefined)
    state = 'idle'
    if (isWanted) want()
  }
  const want = () => {
    isWanted = true
    if (state !== 'idle') return
    state = 'waiting'
    timer = setTimeout(() => void run(), msMin)
  }
  const stop = () => {
    clearTimeout(timer)
    isWanted = false
    if (state === 'waiting') state = 'idle'
  }
  return { want, stop }
}

/**
 * Returns a function that schedules the work `msMin` from now. Calls while it is scheduled are one; calls while it runs schedule it once
 * more after its end. So work that takes longer than `msMin` ends, however often it is requested.
 */
export function usePaced(msMin: number, work: () => Promise<unknown>): () => void {
  const latest = useRef(work)
  useEffect(() => {
    latest.current = work
  })
  const pace = useRef<Pace>(undefined)
  pace.current ??= paceOf(msMin, () => latest.current())
  useEffect(() => () => pace.current?.stop(), [])
  return pace.current.want
}
