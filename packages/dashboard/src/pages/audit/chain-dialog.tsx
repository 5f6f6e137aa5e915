import { type AuditLogVerdict, verifyAuditLog } from '@purser/sdk/seal'
import { useMutation } from '@tanstack/react-query'
import { ShieldCheck } from 'lucide-react'
import { useState } from 'react'
import { useWorkspace } from '../../api/context.ts'
import { Button } from '../../ui/button.tsx'
import { classes } from '../../ui/classes.ts'
import { ErrorBlock } from '../../ui/error-block.tsx'
import { Field, TextInput } from '../../ui/form.tsx'
import { count } from '../../ui/format.ts'
import { Dialog } from '../../ui/overlay.tsx'
import { StateIcon } from '../../ui/state.tsx'
import { Id } from '../../ui/values.tsx'

const hashPattern = /^[0-9a-f]{64}$/

/** Checks the log in the browser: every hash is computed anew, and compared with the record before. */
export function ChainDialog({ onClose }: { onClose: () => void }) {
  const { purser, organisation, environment } = useWorkspace()
  const [kept, setKept] = useState('')
  const [checked, setChecked] = useState(0)
  const keptHash = kept.trim().toLowerCase()
  const isKeptWrong = keptHash !== '' && !hashPattern.test(keptHash)
  const verify = useMutation({
    mutationFn: () => {
      setChecked(0)
      return verifyAuditLog(purser.organisations.auditLog({ limit: 500 }), {
        organisationId: organisation.id,
        keptHash: keptHash === '' ? undefined : keptHash,
        onProgress: setChecked,
      })
    },
  })
  return (
    <Dialog
      open
      onClose={onClose}
      title="Verify the audit log here"
      footer={
        <>
          <Button onClick={onClose}>Close</Button>
          <Button tone="primary" busy={verify.isPending} disabled={isKeptWrong} onClick={() => verify.mutate()}>
            <ShieldCheck aria-hidden />{' '}
            {verify.isPending ? `Verifying … ${checked > 0 ? checked.toLocaleString('en-US') : ''}` : 'Verify'}
          </Button>
        </>
      }
    >
      <div className="flex flex-col gap-4">
        <p className="text-ink-2">
          Your browser reads the records, computes each hash again and compares it with the record before. A record that
          was changed, moved or removed breaks the chain.
        </p>
        <Field
          label="A hash that you stored (optional)"
          hint="It shows whether the whole log was rewritten."
          fault={isKeptWrong ? 'A hash has 64 digits, 0 to 9 and a to f.' : undefined}
        >
          {(wiring) => (
            <TextInput
              {...wiring}
              className="font-mono"
              value={kept}
              onChange={({ target }) => setKept(target.value)}
            />
          )}
        </Field>
        <div aria-live="polite" className="empty:hidden">
          {verify.data !== undefined && !verify.isPending && (
            <Result
              verdict={verify.data}
              isWhole={environment === 'live'}
              wasKept={verify.variables !== null && keptHash !== ''}
            />
          )}
        </div>
        {verify.error !== null && <ErrorBlock error={verify.error} />}
      </div>
    </Dialog>
  )
}

interface ResultProps {
  readonly verdict: AuditLogVerdict
  /** The live environment shows the whole log; the test environment leaves live records out. */
  readonly isWhole: boolean
  readonly wasKept: boolean
}

function Result({ verdict, isWhole, wasKept }: ResultProps) {
  const fault = faultOf(verdict, { isWhole, wasKept })
  const { records, gaps, fromFirst, newestHash } = verdict
  return (
    <div className={classes('rounded-control p-3', fault === undefined ? 'bg-settled-soft' : 'bg-failed-soft')}>
      <p className={classes('flex gap-2 font-medium', fault === undefined ? 'text-settled' : 'text-failed')}>
        <StateIcon state={fault === undefined ? 'settled' : 'failed'} className="mt-0.5" />
        {fault ?? `${count(records, 'record')} verified, from ${fromFirst ? 'the first' : 'the oldest'} to the newest.`}
      </p>
      {fault === undefined && gaps > 0 && (
        <p className="mt-1 text-ink-2">
          Between them, at {count(gaps, 'place')}, are records of the live environment. Switch to live to verify the
          whole chain.
        </p>
      )}
      {fault === undefined && newestHash !== undefined && (
        <p className="mt-1 text-ink-2">
          Store this hash outside the service: <Id value={newestHash} whole />
        </p>
      )}
    </div>
  )
}

/** Describes the fault of the log; undefined if it has none. */
function faultOf(
  { ok, brokenAt, gaps, records, fromFirst, oldest, hasKept }: AuditLogVerdict,
  { isWhole, wasKept }: Pick<ResultProps, 'isWhole' | 'wasKept'>,
): string | undefined {
  if (!ok)
    return `Record ${brokenAt ?? 'unknown'} was changed, or the record before it was: the hash chain breaks there.`
  if (records === 0) return 'The log is empty. Every organisation begins with a record.'
  if (isWhole && gaps > 0) return `Records are missing at ${count(gaps, 'place')}.`
  if (wasKept && !hasKept)
    return 'The hash that you entered is not in the log: the log was rewritten, or the hash belongs to another log.'
  if (isWhole && !fromFirst && !hasKept)
    return `The log begins with record ${oldest?.sequence ?? 'unknown'}. Ask the operator whether the records before it were archived, or enter a hash that you kept.`
  return undefined
}
