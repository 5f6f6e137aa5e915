import type { VaultEvent, VaultState } from '@purser/sdk'
import { useQueryClient } from '@tanstack/react-query'
import { useEffect, useState } from 'react'
import { usePurser } from '../../api/context.ts'
import { vaultsKey } from './queries.ts'

/** More events are not kept on the page. */
export const streamEventsMax = 200
/** Milliseconds for which events are collected before the page takes them. */
const batchMs = 100

export interface VaultStreamState {
  /** Oldest first. */
  readonly events: readonly VaultEvent[]
  readonly status: 'connecting' | 'live' | 'ended'
  readonly error: unknown
}

const nothing: VaultStreamState = { events: [], status: 'connecting', error: undefined }

/** The events of a vault since its creation, and then as they happen. Each batch has the vault read again. */
export function useVaultStream({ id, createdAt }: Pick<VaultState, 'id' | 'createdAt'>): VaultStreamState {
  const purser = usePurser()
  const queries = useQueryClient()
  const [state, setState] = useState(nothing)
  useEffect(() => {
    const stop = new AbortController()
    let batch: VaultEvent[] = []
    let timer: ReturnType<typeof setTimeout> | undefined
    const flush = () => {
      timer = undefined
      const fresh = batch
      batch = []
      setState(({ events }) => ({
        events: [...events, ...fresh].slice(-streamEventsMax),
        status: 'live',
        error: undefined,
      }))
      void queries.invalidateQueries({ queryKey: [...vaultsKey, 'one', id] })
    }
    const run = async () => {
      for await (const event of purser.vaults.events(id, { from: createdAt }, { signal: stop.signal })) {
        batch.push(event)
        timer ??= setTimeout(flush, batchMs)
      }
    }
    setState(nothing)
    run()
      .then(() => {
        clearTimeout(timer)
        if (batch.length > 0) flush()
        setState((old) => ({ ...old, status: 'ended' }))
      })
      .catch((error: unknown) => {
        if (!stop.signal.aborted) setState((old) => ({ ...old, status: 'ended', error }))
      })
    return () => {
      stop.abort()
      clearTimeout(timer)
    }
  }, [purser, queries, id, createdAt])
  return state
}
