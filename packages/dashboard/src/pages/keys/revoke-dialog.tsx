import type { ApiKeyRecord, RevokedKey } from '@purser/sdk'
import { useMutation, useQueryClient } from '@tanstack/react-query'
import { useState } from 'react'
import { usePurser } from '../../api/context.ts'
import { ActionDialog } from '../../ui/action-dialog.tsx'
import { CheckChoice } from '../../ui/form.tsx'
import { count } from '../../ui/format.ts'
import { toastDone } from '../../ui/toast.tsx'
import { Time } from '../../ui/values.tsx'
import { keysKey, shownKey } from './key-words.ts'

/** Revokes a key after a confirmation, and the keys that it created if the person chooses so. */
export function RevokeDialog({ apiKey, onClose }: { apiKey: ApiKeyRecord; onClose: () => void }) {
  const purser = usePurser()
  const queries = useQueryClient()
  const [cascade, setCascade] = useState(false)
  const revoke = useMutation({
    mutationFn: () => purser.organisations.apiKeys.revoke(apiKey.id, { cascade: cascade ? 'true' : 'false' }),
    onSuccess: (revoked) => {
      toastDone(`${apiKey.name} is revoked`, othersWords(revoked))
      void queries.invalidateQueries({ queryKey: keysKey })
      onClose()
    },
  })
  return (
    <ActionDialog
      title="Revoke this key"
      act={<>Revoke {apiKey.name.length > 24 ? 'the key' : apiKey.name}</>}
      keep="Cancel"
      tone="danger"
      action={revoke}
      onClose={onClose}
    >
      <p className="text-ink-2">
        <span className="font-medium break-words text-ink">{apiKey.name}</span>{' '}
        <span className="font-mono text-sm">{shownKey(apiKey.environment, apiKey.last4)}</span> is refused from the next
        request. This cannot be undone. {apiKey.lastUsedAt === null ? 'It was never used.' : 'It was last used '}
        {apiKey.lastUsedAt !== null && (
          <>
            <Time at={apiKey.lastUsedAt} />.
          </>
        )}
      </p>
      <CheckChoice label="Also revoke the keys that it created" isOn={cascade} onToggle={() => setCascade(!cascade)} />
    </ActionDialog>
  )
}

/** Describes the outcome for the keys that this key created; undefined if it created no valid one. */
function othersWords(revoked: RevokedKey | undefined): string | undefined {
  if (revoked === undefined) return undefined
  const { ended, stillValid } = revoked
  if (ended.length > 0) return `${count(ended.length, 'key')} that it created ended with it.`
  if (stillValid.length === 0) return undefined
  return `${count(stillValid.length, 'key')} that it created ${stillValid.length === 1 ? 'remains' : 'remain'} valid.`
}
