import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query'
import { Fingerprint, Pencil, Plus, Trash2 } from 'lucide-react'
import { useState } from 'react'
import { addPasskey, type Passkey, removePasskey, renamePasskey } from '../../sign-in/credentials.ts'
import { ActionDialog } from '../../ui/action-dialog.tsx'
import { Button, IconButton } from '../../ui/button.tsx'
import { ErrorBlock } from '../../ui/error-block.tsx'
import { Field, TextInput } from '../../ui/form.tsx'
import { Dialog } from '../../ui/overlay.tsx'
import { Card, Empty, Skeleton } from '../../ui/page.tsx'
import { toastDone } from '../../ui/toast.tsx'
import { Time } from '../../ui/values.tsx'
import { browserName } from './browser-name.ts'
import { passkeysKey, passkeysQuery } from './queries.ts'

type Doing = { readonly act: 'add' } | { readonly act: 'rename' | 'remove'; readonly passkey: Passkey }

const nameLengthMax = 60

/** The passkeys of the person: added, named and removed. */
export function Passkeys() {
  const passkeys = useQuery(passkeysQuery)
  const [doing, setDoing] = useState<Doing>()
  const add = (tone: 'primary' | 'secondary') => (
    <Button small={tone === 'secondary'} tone={tone} onClick={() => setDoing({ act: 'add' })}>
      <Plus aria-hidden /> Add a passkey
    </Button>
  )
  const rows = passkeys.data ?? []
  return (
    <Card title="Passkeys" flush aside={rows.length > 0 && add('secondary')}>
      {passkeys.error !== null ? (
        <div className="p-4">
          <ErrorBlock error={passkeys.error} onRetry={() => passkeys.refetch()} />
        </div>
      ) : passkeys.data === undefined ? (
        <Skeleton lines={2} className="p-4" />
      ) : rows.length === 0 ? (
        <Empty icon={<Fingerprint />} title="No passkeys yet" action={add('primary')}>
          A passkey signs you in with a fingerprint, a face or a PIN. No password can be stolen or guessed.
        </Empty>
      ) : (
        <ul>
          {rows.map((passkey) => (
            <PasskeyRow key={passkey.id} passkey={passkey} onDo={(act) => setDoing({ act, passkey })} />
          ))}
        </ul>
      )}
      {doing?.act === 'add' && <NameDialog onClose={() => setDoing(undefined)} />}
      {doing?.act === 'rename' && <NameDialog passkey={doing.passkey} onClose={() => setDoing(undefined)} />}
      {doing?.act === 'remove' && (
        <RemoveDialog passkey={doing.passkey} isLast={rows.length === 1} onClose={() => setDoing(undefined)} />
      )}
    </Card>
  )
}

function PasskeyRow({ passkey, onDo }: { passkey: Passkey; onDo: (act: 'rename' | 'remove') => void }) {
  const { name, createdAt, isSynced } = passkey
  return (
    <li className="flex items-center gap-3 border-b border-line px-4 py-3 last:border-b-0">
      <Fingerprint className="size-4 shrink-0 text-ink-3" aria-hidden />
      <div className="min-w-0 flex-1">
        <p className="truncate font-medium">{name}</p>
        <p className="text-sm text-ink-2">
          Added <Time at={createdAt} /> · {isSynced ? 'on all your devices' : 'on one device'}
        </p>
      </div>
      <IconButton label={`Rename ${name}`} onClick={() => onDo('rename')}>
        <Pencil aria-hidden />
      </IconButton>
      <IconButton label={`Remove ${name}`} onClick={() => onDo('remove')}>
        <Trash2 aria-hidden />
      </IconButton>
    </li>
  )
}

function useDone(onClose: () => void) {
  const queries = useQueryClient()
  return (words: string) => {
    toastDone(words)
    void queries.invalidateQueries({ queryKey: passkeysKey })
    onClose()
  }
}

/** Names a new passkey, which the browser then creates, or renames an existing one. */
function NameDialog({ passkey, onClose }: { passkey?: Passkey; onClose: () => void }) {
  const [name, setName] = useState(passkey?.name ?? browserName(navigator.userAgent))
  const done = useDone(onClose)
  const save = useMutation({
    mutationFn: () => (passkey === undefined ? addPasskey(name.trim()) : renamePasskey(passkey.id, name.trim())),
    onSuccess: () => done(passkey === undefined ? 'The passkey is added' : 'The passkey has its new name'),
  })
  const isCancelled = save.error instanceof DOMException
  return (
    <Dialog
      open
      onClose={onClose}
      title={passkey === undefined ? 'Add a passkey' : 'Rename the passkey'}
      footer={
        <>
          <Button onClick={onClose}>Cancel</Button>
          <Button
            type="submit"
            form="passkey-name"
            tone="primary"
            busy={save.isPending}
            disabled={name.trim() === '' || name.trim() === passkey?.name}
          >
            {passkey !== undefined
              ? 'Save the name'
              : save.isPending
                ? 'Waiting for your browser …'
                : 'Add the passkey'}
          </Button>
        </>
      }
    >
      <form
        id="passkey-name"
        className="flex flex-col gap-4"
        onSubmit={(event) => {
          event.preventDefault()
          save.mutate()
        }}
      >
        {passkey === undefined && (
          <p className="text-ink-2">Your browser shows where the passkey can be kept. The name is for you alone.</p>
        )}
        <Field label="Name" fault={isCancelled ? 'Your browser made no passkey. Try again.' : undefined}>
          {(wiring) => (
            <TextInput
              {...wiring}
              maxLength={nameLengthMax}
              value={name}
              onChange={({ target }) => setName(target.value)}
            />
          )}
        </Field>
        {save.error !== null && !isCancelled && <ErrorBlock error={save.error} />}
      </form>
    </Dialog>
  )
}

function RemoveDialog({ passkey, isLast, onClose }: { passkey: Passkey; isLast: boolean; onClose: () => void }) {
  const done = useDone(onClose)
  const remove = useMutation({
    mutationFn: () => removePasskey(passkey.id),
    onSuccess: () => done('The passkey is removed'),
  })
  return (
    <ActionDialog
      title="Remove this passkey"
      act="Remove the passkey"
      keep="Keep it"
      tone="danger"
      action={remove}
      onClose={onClose}
    >
      <p className="text-ink-2">
        <span className="font-medium break-words text-ink">{passkey.name}</span> no longer signs you in. Delete it from
        your device too.
        {isLast && ' It is your last one: make sure that you can sign in by a link or a password.'}
      </p>
    </ActionDialog>
  )
}
