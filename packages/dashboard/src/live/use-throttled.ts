import { useEffect, useRef } from 'react'

interface Throttle {
  readonly want: () => void
  readonly stop: () => void
}

function throttleOf(msMin: number, work: () => Promise<unknown>): Throttle {
  let state: 'idle' | 'waiting' | 'working' = 'idle'
  let isWanted = false
  let timer: ReturnType<typeof setTimeout> | undefined
  const run = async () => {
    state = 'working'
    isWanted = false
    await work()
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
 * Returns a function that schedules the work, which never rejects, `msMin` from now. Calls while it is scheduled have no further effect;
 * calls while it runs schedule one more run after it. So slow work is never run twice at a time.
 */
export function useThrottled(msMin: number, work: () => Promise<unknown>): () => void {
  const latest = useRef(work)
  useEffect(() => {
    latest.current = work
  })
  const throttle = useRef<Throttle>(undefined)
  throttle.current ??= throttleOf(msMin, () => latest.current())
  useEffect(() => () => throttle.current?.stop(), [])
  return throttle.current.want
}
