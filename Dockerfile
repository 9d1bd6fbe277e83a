# The simulator as a container: three brokers on 9092, 9093 and 9094.
#   docker build -t broker-sim .
#   docker run --rm -p 127.0.0.1:9092-9094:9092-9094 broker-sim
# Without a registry take any image with Python 3.11 or newer and its venv module:
#   docker build -t broker-sim --build-arg PYTHON_IMAGE=... .
ARG PYTHON_IMAGE=python:3.11-slim
FROM ${PYTHON_IMAGE}

WORKDIR /broker-sim
COPY pyproject.toml hatch_build.py constraints.txt README.md LICENSE NOTICE ./
COPY purgatory purgatory
COPY broker_sim broker_sim
COPY integration integration
RUN python3 -m venv /opt/broker-sim \
    && /opt/broker-sim/bin/pip install --no-cache-dir -c constraints.txt '.[compression,fast]'
ENV PATH=/opt/broker-sim/bin:${PATH} \
    PYTHONUNBUFFERED=1

EXPOSE 8090 9092 9093 9094
USER nobody
CMD ["broker-sim", "run", "--brokers", "3", "--host", "0.0.0.0", "--advertised-host", "127.0.0.1", "--port", "9092", "--control-host", "0.0.0.0", "--control-port", "8090"]
