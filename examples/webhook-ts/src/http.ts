/** The fields of an HTTP event that this function reads. */
export interface HttpEvent {
  headers: Record<string, string | undefined>;
  requestContext?: { http?: { method: string } };
  /** base64 */
  body?: string;
}

/** The result that the platform turns into an HTTP response. */
export interface HttpResponse {
  statusCode: number;
  headers: Record<string, string>;
  body: string;
}
