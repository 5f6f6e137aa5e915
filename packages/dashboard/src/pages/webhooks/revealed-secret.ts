import { type QueryClient, skipToken, useQuery } from '@tanstack/react-query'

const secretsKey = ['webhook-secrets'] as const
/** A secret stays in the memory of the page this long after the page of its endpoint is left. */
const keptMs = 60_000

/** Keeps a secret that the service has just shown, so that the reader can verify a signature with it. */
export function keepSecret(queries: QueryClient, webhookId: string, secret: string): void {
  queries.setQueryDefaults(secretsKey, { gcTime: keptMs })
  queries.setQueryData([...secretsKey, webhookId], secret)
}

/** The secret of an endpoint, if the reader has just made it. */
export function useRevealedSecret(webhookId: string): string | undefined {
  return useQuery<string>({ queryKey: [...secretsKey, webhookId], queryFn: skipToken, gcTime: keptMs }).data
}
