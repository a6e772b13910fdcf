# Serves the model folder that is mounted at /model; feedback goes to /feedback.
FROM python:3.12-slim AS build
WORKDIR /source
COPY pyproject.toml constraints.txt README.md LICENSE ./
COPY src src
RUN python -m venv /opt/nlpcapsule \
 && /opt/nlpcapsule/bin/pip install --no-cache-dir -c constraints.txt torch \
 && /opt/nlpcapsule/bin/pip install --no-cache-dir -c constraints.txt '.[serve,transformers,omikuji]'

FROM python:3.12-slim
RUN useradd --system --uid 10001 --create-home nlpcapsule && mkdir /feedback && chown nlpcapsule /feedback
COPY --from=build /opt/nlpcapsule /opt/nlpcapsule
USER nlpcapsule
ENV PATH=/opt/nlpcapsule/bin:$PATH PYTHONUNBUFFERED=1
VOLUME /feedback
EXPOSE 8000
HEALTHCHECK --interval=30s --start-period=60s \
  CMD ["python", "-c", "import urllib.request; urllib.request.urlopen('http://127.0.0.1:8000/readyz')"]
ENTRYPOINT ["nlpcapsule", "serve", "/model", "--host", "0.0.0.0", "--feedback", "/feedback/feedback.sqlite"]
