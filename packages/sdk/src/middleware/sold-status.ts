/** Whether a status is charged. Only 2xx is: "not modified", which a handler returns by itself, and redirects deliver nothing. */
export function isSold(status: number): boolean {
  return status >= 200 && status < 300
}
